//! Where the audited rows stand in their table, some rows of which may have no target.

use broadlearn::data::{Column, Kind, TableReader, TargetSchema};
use broadlearn::{Model, Result};

/// The rows that are not audited.
#[derive(Default)]
pub(super) struct Places {
    /// Their numbers from 0, ascending.
    left_out: Vec<usize>,
}

impl Places {
    /// Looks for rows without a target of this model.
    pub(super) fn find(mut reader: TableReader, model: &Model) -> Result<Self> {
        let target = &model.schema().target;
        let kind = match target {
            TargetSchema::Classification { kind, .. } => *kind,
            TargetSchema::Regression { .. } => Kind::Number,
        };
        let place = |name: &str| reader.columns().iter().position(|column| column == name);
        let selection: Vec<(usize, Kind)> =
            target.names().into_iter().filter_map(place).map(|column| (column, kind)).collect();
        reader.select(&selection)?;
        let mut left_out = Vec::new();
        while let Some(batch) = reader.next_batch(8192)? {
            let first = (batch.first_row - 1) as usize;
            let lacks = |row: usize| batch.columns.iter().any(|column| is_missing(column, row));
            left_out.extend((0..batch.rows()).filter(|&row| lacks(row)).map(|row| first + row));
        }
        Ok(Self { left_out })
    }

    /// How many rows are left out.
    pub(super) fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// The number in the table, from 1, of an audited row.
    pub(super) fn number(&self, row: usize) -> usize {
        // Before row `left_out[k]` there are `left_out[k] - k` audited ones.
        let (mut low, mut high) = (0, self.left_out.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.left_out[middle] - middle <= row {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        row + low + 1
    }

    /// The audited row that has this number in the table, from 0.
    pub(super) fn audited(&self, place: usize) -> Option<usize> {
        self.left_out.binary_search(&place).err().map(|before| place - before)
    }
}

fn is_missing(column: &Column, row: usize) -> bool {
    match column {
        Column::Number(values) => values[row].is_nan(),
        Column::Text { .. } => column.text(row).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_the_table_and_back() {
        for left_out in [vec![], vec![0], vec![4], vec![0, 1, 2], vec![1, 3, 4, 8]] {
            let places = Places { left_out };
            let kept: Vec<usize> =
                (0..10).filter(|place| !places.left_out.contains(place)).collect();
            for (row, &place) in kept.iter().enumerate() {
                assert_eq!(places.number(row), place + 1);
                assert_eq!(places.audited(place), Some(row));
            }
            assert!(places.left_out.iter().all(|&place| places.audited(place).is_none()));
        }
    }
}
