//! Asking before something is destroyed.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use crate::cli::{Exit, broker::Failed};

/// For commands that destroy something.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::cli) struct Confirm {
    /// Do not ask
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}

impl Confirm {
    /// Goes on where somebody agrees to `what`, a question without its mark. Where nobody can be asked, only `--yes` agrees.
    pub(in crate::cli) fn ask(self, what: &str) -> Result<(), Failed> {
        if self.yes {
            return Ok(());
        }
        let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
        if !stdin.is_terminal() || !stderr.is_terminal() {
            let text = format!("{what}? nobody can be asked here: --yes agrees");
            return Err(Failed::new(Exit::BadConfiguration, text));
        }
        write!(stderr, "{what}? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        stdin.lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failed::new(Exit::Failure, "not done: nobody agreed")),
        }
    }
}
