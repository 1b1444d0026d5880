//! A live run on the image of a drive: what it holds outlives the process.

use super::{LiveRun, RunError};
use crate::image::{Creating, Header, Image, ImageError};
use crate::precondition::Precondition;
use flashwright_block::{BlockDevice, Completion, IoError, Nanos, Request, RequestKind, Seed};
use flashwright_ftl::SchemeName;
use flashwright_ftl::durable::Mirror;
use flashwright_ssd::{ConfigError, DriveConfig, Keeps, Medium, SettingError, Ssd, SsdError};
use std::path::Path;

/// The image of a live run's drive.
#[derive(Debug, Default)]
pub(super) struct LiveImage {
    /// Why nothing is written to it any more, after which the drive is off for good.
    lost: Option<String>,
}

impl LiveRun {
    /// As [`LiveRun::new`], for a drive that lives in the file `path`. If there is none, the drive is built and preconditioned, and the
    /// file appears when it holds all of it; otherwise the drive goes on from what it holds, as after a loss of power.
    ///
    /// Every change of the chips goes to the file when it is done, and the answer of a flush or a forced write waits until the file's
    /// content is on its disk. If the file can't be written, the drive loses its power for good.
    ///
    /// # Errors
    /// As [`LiveRun::new`]; [`RunError::Image`] if the file is in use, damaged or of another drive, or if it is there and a
    /// `precondition` is wanted; [`RunError::Ssd`] for a drive that can't be mounted again.
    pub fn on_image(
        path: &Path,
        config: &DriveConfig,
        seed: Seed,
        precondition: Option<Precondition>,
        mut cancelled: impl FnMut() -> bool,
    ) -> Result<Self, RunError> {
        let wanted = precondition.unwrap_or_default();
        Self::check(config, wanted)?;
        check_for_image(config)?;
        let mut ssd = Ssd::new(config, seed, Keeps::Bytes)?;
        let mut run = if path.exists() {
            if precondition.is_some() {
                let what = format!("exists, and no precondition can be had with it: found {wanted}");
                let hint = "leave the precondition out, or name a file that does not exist to begin a new drive";
                return Err(ImageError::new(path, &what, hint).into());
            }
            let (image, mut medium) = Image::open(path, config, seed, &mut cancelled)?;
            let kept = image.kept().to_vec();
            medium.mirror_to(Box::new(image));
            let mounted = ssd.take_over(medium).map_err(|error| ImageError::new(path, &error.to_string(), ""))?;
            let mut run = Self::on(ssd, seed, wanted, cancelled)?;
            run.kept = kept;
            run.notes.push(format!(
                "image {}: mounted, with {} pages of data and {} that can't be read",
                path.display(),
                mounted.pages_mapped,
                mounted.pages_torn
            ));
            run
        } else {
            let creating = Creating::begin(path)?;
            let mut run = Self::on(ssd, seed, wanted, &mut cancelled)?;
            let ssd = run.run.machine.ssd_mut();
            if let Some(medium) = ssd.medium_mut() {
                let image = creating.finish(&Header::new(config, seed), (&config.layout(), medium, &[]), cancelled)?;
                medium.mirror_to(Box::new(image));
            }
            run
        };
        run.image = Some(LiveImage::default());
        run.sync_image().map_err(|what| ImageError { what, hint: "make room for it".to_owned() })?;
        Ok(run)
    }

    /// Writes what the chips would hold if the power failed now to a new file that [`LiveRun::on_image`] takes. The drive goes on.
    /// Returns the number of pages programmed.
    ///
    /// # Errors
    /// One line if the drive could not be mounted again, or the file exists or can't be written.
    pub fn snapshot(&mut self, path: &Path) -> Result<u64, String> {
        let seed = self.run.settings.seed;
        let mut copy = self.run.machine.clone();
        copy.cut()?;
        let copy = copy.ssd();
        let Some(medium) = copy.medium() else { return Ok(0) };
        let header = Header::new(copy.config(), seed);
        let made = Creating::begin(path)
            .and_then(|creating| creating.finish(&header, (&copy.config().layout(), medium, &self.kept), || false));
        made.map_err(|error| error.to_string())?;
        Ok(medium.blocks().iter().map(|block| block.pages.len() as u64).sum())
    }

    /// What was last kept with the drive by [`LiveRun::keep`].
    #[must_use]
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Keeps something with the drive, such as its namespaces: in its image, if it has one, where it lasts when this returns. It
    /// takes the drive no time.
    ///
    /// # Errors
    /// One line if the image can't be written.
    pub fn keep(&mut self, what: &[u8]) -> Result<(), String> {
        self.check_image()?;
        what.clone_into(&mut self.kept);
        let kept = self.mirror().map_or(Ok(()), |mirror| mirror.keep(what));
        self.note_failure();
        kept
    }

    /// Ends in order: what the drive has only in RAM goes to flash, and the image to its disk. Without an image nothing happens. To be
    /// called when the figures have been taken, which it changes.
    ///
    /// # Errors
    /// One line if the image can't be written; it is then as after a loss of power.
    pub fn close(&mut self) -> Result<(), String> {
        if self.image.is_none() {
            return Ok(());
        }
        self.check_image()?;
        if self.ssd().is_on() {
            self.flush()?;
        }
        self.sync_image()
    }

    /// What people should know and have not been told.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Flushes the drive, and waits for all that is in flight.
    fn flush(&mut self) -> Result<(), String> {
        let request = Request { kind: RequestKind::Flush, arrival: self.now(), ..Request::default() };
        let device = self.run.machine.device();
        device.submit(request).map_err(|error| error.to_string())?;
        let mut completion = Completion::default();
        while device.wait(Nanos(u64::MAX), &mut completion).map_err(|error| error.to_string())? {
            if let (RequestKind::Flush, Err(error)) = (completion.request.kind, &completion.result) {
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    fn mirror(&mut self) -> Option<&mut dyn Mirror> {
        self.run.machine.ssd_mut().medium_mut().and_then(Medium::mirror_mut)
    }

    /// Makes the image last.
    pub(super) fn sync_image(&mut self) -> Result<(), String> {
        let synced = self.mirror().map_or(Ok(()), Mirror::sync);
        self.note_failure();
        synced
    }

    /// Refuses what the drive can't do any more because its image can't be written.
    pub(super) fn check_image(&self) -> Result<(), String> {
        self.image.as_ref().and_then(|image| image.lost.clone()).map_or(Ok(()), Err)
    }

    /// Before a completion is handed out: what it promises lasts, or it fails.
    #[cold]
    pub(super) fn keep_promise(&mut self, completion: &mut Completion) {
        let promises = completion.request.kind == RequestKind::Flush || completion.request.fua;
        if completion.result.is_ok() && promises && !self.ssd().config().recovery.ignores_flush {
            // Its failure is asked for in any case.
            let _ = self.mirror().map_or(Ok(()), Mirror::sync);
        }
        self.note_failure();
        if let Err(why) = self.check_image()
            && (completion.request.kind != RequestKind::Read || completion.result.is_err())
        {
            completion.result = Err(Box::new(IoError::Device(why)));
        }
    }

    /// If the image can't be written any more, the drive loses its power: the image is as after a cut.
    fn note_failure(&mut self) {
        let Some(why) = self.mirror().and_then(|mirror| mirror.failure().map(str::to_owned)) else { return };
        let Some(image) = self.image.as_mut().filter(|image| image.lost.is_none()) else { return };
        self.notes.push(format!(
            "{why}: the drive has lost its power. What was flushed is safe: make room, and serve the image again"
        ));
        image.lost = Some(why);
        // It could be mounted again, or it would have no image.
        let _ = self.run.machine.cut();
    }
}

/// Every setting with which a drive can't live in a file.
pub(super) fn check_for_image(config: &DriveConfig) -> Result<(), RunError> {
    let mut problems = Vec::new();
    let mut refuse = |key: &str, what: &str| {
        problems.push(SettingError { key: key.to_owned(), what: what.to_owned() });
    };
    if !config.recovery.can_mount() {
        let what = "found \"nothing\", expected \"scan\" with an image: the drive must mount what the file holds; set it, as in \
                    --set recovery.mount-by=scan";
        refuse("recovery.mount-by", what);
    }
    if config.ram.manager.is_some() && config.ram.power_protected {
        let what = "found true, expected false with an image: when the server is killed, no capacitors save the RAM to the file";
        refuse("ram.power-protected", what);
    }
    if config.recovery.takes_checkpoints() && config.ftl.scheme != SchemeName::Page {
        let what =
            "expected \"0 B\" with an image and this ftl.scheme: its checkpoints say more than fits a page of the file";
        refuse("recovery.checkpoint-interval", what);
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(SsdError::Config(ConfigError { source_name: config.name.clone(), problems }).into())
}
