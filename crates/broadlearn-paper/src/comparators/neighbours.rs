//! K-NN: the class of most of the nearest training rows.

use broadlearn::faer::Mat;

/// Squared distances between rows: one row per row of `a`, one column per row of `b`.
pub fn squared_distances(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    // Columns are contiguous, rows are not.
    let (a, b) = (a.transpose().to_owned(), b.transpose().to_owned());
    Mat::from_fn(a.ncols(), b.ncols(), |i, j| {
        a.col(i).iter().zip(b.col(j).iter()).map(|(x, y)| (x - y) * (x - y)).sum()
    })
}

/// The class of each row by its nearest 1, 2, ... `most` training rows, from its distances to them. Of
/// classes with equally many of these the one that has the nearest wins.
pub fn by_neighbours(distances: &Mat<f64>, classes: &[u32], most: usize) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::with_capacity(distances.nrows()); most];
    let count = classes.iter().max().map_or(0, |class| *class as usize + 1);
    for row in distances.row_iter() {
        let mut order: Vec<usize> = (0..classes.len()).collect();
        order.sort_by(|a, b| row[*a].total_cmp(&row[*b]));
        let mut votes = vec![0_usize; count];
        for (place, answers) in found.iter_mut().enumerate() {
            if let Some(neighbour) = order.get(place) {
                votes[classes[*neighbour] as usize] += 1;
            }
            let most_votes = votes.iter().max().copied().unwrap_or(0);
            let winner =
                order.iter().map(|i| classes[*i]).find(|c| votes[*c as usize] == most_votes);
            answers.push(winner.unwrap_or(0));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use broadlearn::features::draw::{Purpose, Stream};

    #[test]
    fn it_is_what_counting_all_rows_gives() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let mut drawn = |rows: usize| Mat::from_fn(rows, 3, |_, _| stream.normal());
        let (train, test) = (drawn(50), drawn(20));
        let classes: Vec<u32> = (0..50).map(|i| (i * 7 % 3) as u32).collect();
        let found = by_neighbours(&squared_distances(&test, &train), &classes, 10);
        for k in 1..=10 {
            for i in 0..20 {
                let distance =
                    |j: usize| (0..3).map(|c| (test[(i, c)] - train[(j, c)]).powi(2)).sum::<f64>();
                // A row is among the k nearest if fewer than k are nearer.
                let near: Vec<usize> = (0..50)
                    .filter(|j| (0..50).filter(|o| distance(*o) < distance(*j)).count() < k)
                    .collect();
                let votes = |class: u32| near.iter().filter(|j| classes[**j] == class).count();
                let most = (0..3).map(votes).max().unwrap();
                let nearest = near
                    .iter()
                    .filter(|j| votes(classes[**j]) == most)
                    .min_by(|a, b| distance(**a).total_cmp(&distance(**b)));
                assert_eq!(found[k - 1][i], classes[*nearest.unwrap()], "row {i}, k = {k}");
            }
        }
    }
}
