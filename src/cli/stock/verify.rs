//! `leasehold stock verify`.

use clap::Args;

use crate::{
    cli::{
        Exit,
        broker::{Failed, Target},
        exit::note,
        output::{Output, progress::Progress, stock},
    },
    v1::VerifyStockRequest,
};

/// `leasehold stock verify`.
#[derive(Debug, Args)]
#[command(after_help = "Ends with exit code 1 where anything differs. It may run while everything goes on.")]
pub(in crate::cli) struct Verify {
    /// Only this item
    #[arg(value_name = "ITEM", default_value = "", hide_default_value = true)]
    item: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Verify {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        let progress = Progress::new(None, "stocks compared");
        let (mut compared, mut differences, mut table) = (0, 0_u64, stock::differences());
        let request = broker.stream(VerifyStockRequest { item: self.item });
        let mut frames = broker.stock_admin().verify_stock(request).await?.into_inner();
        while let Some(frame) = frames.message().await.map_err(|status| {
            Failed::from(status).after(&format!("{compared} stocks were compared, with {differences} differences"))
        })? {
            compared = frame.compared;
            progress.at(compared);
            for difference in &frame.differences {
                differences += 1;
                if self.output.json {
                    Output::object(&stock::difference_json(difference))?;
                } else {
                    stock::difference_row(&mut table, difference);
                }
            }
        }
        drop(progress);
        if differences > 0 && !self.output.json {
            Output::table(&table, "")?;
        }
        let said = match differences {
            0 => "no difference".to_owned(),
            1 => "1 difference".to_owned(),
            many => format!("{many} differences"),
        };
        note(&format_args!("{compared} stocks compared: {said}"));
        Ok(if differences == 0 { Exit::Ok } else { Exit::Failure })
    }
}
