use crate::support::csv::Csv;

/// The table for people and the rows for machines.
pub(crate) struct Report {
    pub(crate) csv: Csv,
}

impl Report {
    pub(crate) fn new() -> Report {
        println!("| case | metric | value | unit | ZooKeeper 3.8 | ratio |");
        println!("|---|---|---|---|---|---|");
        Report { csv: Csv::new() }
    }

    /// A figure, with ZooKeeper's where there is one. The ratio is how many times better the figure is.
    pub(crate) fn row(&mut self, case: &str, metric: &str, value: f64, unit: &str, zookeeper: Option<f64>) {
        let ratio = zookeeper.map(|z| if unit == "B" { z / value } else { value / z });
        let text = |figure: Option<f64>| figure.map_or(String::new(), number);
        println!(
            "| {case} | {metric} | {} | {unit} | {} | {} |",
            number(value),
            text(zookeeper),
            text(ratio)
        );
        self.csv.row("tree", case, metric, value, unit);
        if let Some(ratio) = ratio {
            self.csv.row("tree", case, &format!("{metric}_ratio_to_zookeeper"), ratio, "1");
        }
    }
}

fn number(figure: f64) -> String {
    if figure.abs() >= 1000.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
}
