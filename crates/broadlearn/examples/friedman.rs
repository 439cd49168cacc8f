//! Writes a large table: Friedman's first function of ten inputs with noise, and outliers in a tenth of the
//! rows. `cargo xtask bench scale` learns it from files of growing size.
//!
//! ```sh
//! cargo run --release --example friedman -- ROWS > table.csv
//! ```

use broadlearn::features::draw::{Purpose, Stream};
use std::f64::consts::PI;
use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let rows: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let mut stream = Stream::new(1, Purpose::Noise, 0);
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    writeln!(out, "x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,y")?;
    let mut x = [0.0; 10];
    for _ in 0..rows {
        x.fill_with(|| stream.unit());
        let smooth = 10.0 * (PI * x[0] * x[1]).sin() + 20.0 * (x[2] - 0.5).powi(2);
        let outlier = if stream.unit() < 0.1 { 30.0 * stream.normal() } else { 0.0 };
        let y = smooth + 10.0 * x[3] + 5.0 * x[4] + stream.normal() + outlier;
        for value in x {
            write!(out, "{value},")?;
        }
        writeln!(out, "{y}")?;
    }
    out.flush()
}
