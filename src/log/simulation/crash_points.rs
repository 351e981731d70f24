//! Every operation of the fixed workloads as the moment of a power cut.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::fixed::{FIXED, Fixed, world};
use super::model::Model;
use super::oracle::check_image;
use crate::base::Random;
use crate::sim::CrashImage;

/// Cuts power before and after each operation of a workload, in several ways. Returns how many images were
/// recovered.
pub(super) fn crash_everywhere(fixed: &Fixed, seed: u64, random_images: u64) -> u64 {
    let mut world = world(seed);
    let models: Arc<Mutex<Vec<Model>>> = Arc::default();
    let (kept, published) = (models.clone(), world.published.clone());
    world.disk.capture_moments(move |_, _| {
        kept.lock().push(published.lock().clone());
        true
    });
    let told = |what: String, check: &mut dyn FnMut() -> u64| match catch_unwind(AssertUnwindSafe(check)) {
        Ok(done) => done,
        Err(panic) => {
            eprintln!("workload \"{}\", seed {seed}, {what}", fixed.name);
            std::panic::resume_unwind(panic)
        }
    };
    told("while it ran".into(), &mut || {
        (fixed.run)(&mut world);
        1
    });
    let moments = world.disk.take_moments();
    let models = std::mem::take(&mut *models.lock());
    assert_eq!(moments.len(), models.len(), "a model for each moment");
    let images = [CrashImage::DropUnsynced, CrashImage::KeepAll];
    let mut count = 0;
    for (moment, model) in moments.iter().zip(&models) {
        let random = (0..random_images).map(|n| CrashImage::Random(seed ^ n << 32 ^ moment.operation()));
        for image in images.into_iter().chain(random) {
            let disk = moment.image(image);
            let mut dice = Random::from_seed(seed);
            let what = format!("{:?} operation {}, {image:?}", moment.side(), moment.operation());
            told(what, &mut || check_image(&disk, &world.setup, model, &mut dice));
            count += 1;
        }
    }
    count
}

#[test]
fn crash_points_of_fixed_workloads() {
    for fixed in FIXED {
        for seed in 0..4 {
            let images = crash_everywhere(fixed, seed, 3);
            assert!(images > 100, "\"{}\" has only {images} images", fixed.name);
        }
    }
}
