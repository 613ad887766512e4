//! Texts side by side: how wide they are on a terminal, and how they are filled up to a column.

/// How many columns a text takes. Signs of East Asian scripts take two.
pub(crate) fn width(text: &str) -> usize {
    let wide = |sign: char| {
        matches!(sign, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}')
            || matches!(sign, '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}')
            || matches!(sign, '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}')
    };
    text.chars().map(|sign| if wide(sign) { 2 } else { 1 }).sum()
}

/// Fills a text up with spaces on its right.
pub(crate) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Fills a text up with spaces on its left.
pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// On which side a column's texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows of equal columns, each as wide as its widest text. The first row is the head.
pub(crate) fn table(sides: &[Side], rows: &[Vec<String>]) -> String {
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| width(text)).max();
    let widths: Vec<usize> = (0..sides.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(sides).zip(&widths).map(|((cell, side), width)| match side {
            Side::Left => left(cell, *width),
            Side::Right => right(cell, *width),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_in_both_scripts() {
        let rows =
            [["工具", "次数"], ["Bash", "7"], ["中", "1200"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&[Side::Left, Side::Right], &rows), "工具  次数\nBash     7\n中    1200\n");
    }
}
