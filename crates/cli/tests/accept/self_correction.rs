//! Commands that are checked, corrected and rolled back.
