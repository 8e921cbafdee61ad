//! Passes over what most databases do not have.

/// Of so many turns one is taken.
const TURNS: u32 = 6;

/// Takes the first turn and then one of six: until it is known that a database keeps stock at all, looking for it costs little.
#[derive(Debug, Default)]
pub(super) struct Seldom(u32);

impl Seldom {
    /// Whether this turn is taken.
    pub(super) fn comes(&mut self) -> bool {
        let comes = self.0 == 0;
        self.0 = (self.0 + 1) % TURNS;
        comes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_turn_is_taken_and_then_one_of_six() {
        let mut seldom = Seldom::default();
        let taken: Vec<usize> = (0..13).filter(|_| seldom.comes()).collect();
        assert_eq!(taken, [0, 6, 12]);
    }
}
