use flashwright_block::*;
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::*;
use flashwright_nand::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let planes: u32 = a[1].parse().unwrap();
    let blocks: u32 = a[2].parse().unwrap();
    let np: u32 = a[3].parse().unwrap();
    let u: f64 = a[4].parse().unwrap();
    let writes: u64 = a[5].parse().unwrap();
    let g = Geometry::new(planes, 1, 1, blocks / planes, np, Bytes(4096));
    let logical = (f64::from(g.pages()) * u) as u32;
    let nand = Nand::new(g, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
    let mut flash = Flash::new(nand, logical, a.len() > 6, false);
    let (f, mut gc, p, w) =
        (FtlSettings::default(), GcSettings::default(), PlacementConfig::default(), WearSettings::default());
    gc.free_blocks_min = 1;
    let ctx = SchemeContext {
        logical_pages: logical,
        dies_per_way: 1,
        ftl: &f,
        gc: &gc,
        placement: &p,
        wear: &w,
        seed: Seed(1),
    };
    println!("{:?}", SchemeName::Page.faults(&ctx, &flash));
    let mut s = SchemeName::Page.build(&ctx, &mut flash);
    for l in 0..logical {
        flash.clear_log();
        s.write(LpnRun { first: Lpn(l), pages: 1, stream: 0 }, &mut flash).unwrap();
    }
    let mut rng = Seed(3).stream("x");
    let mut ahead = [0u32; 32];
    for x in &mut ahead {
        *x = below(&mut rng, u64::from(logical)) as u32;
    }
    let mut c0 = flash.counters().clone();
    let mut t = std::time::Instant::now();
    for i in 0..writes {
        if i == writes / 2 {
            c0 = flash.counters().clone();
            t = std::time::Instant::now();
        }
        let k = (i % 32) as usize;
        let lpn = ahead[k];
        ahead[k] = below(&mut rng, u64::from(logical)) as u32;
        s.expect_far(Lpn(ahead[k]));
        s.expect_near(Lpn(ahead[(k + 16) % 32]), &flash);
        flash.clear_log();
        flash.host_writes_page(Lpn(lpn));
        s.write(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }, &mut flash).unwrap();
    }
    let d = flash.counters().since(&c0);
    let n = writes - writes / 2;
    println!(
        "wa {:.4} ns/write {:.2}",
        d.total(OpKind::Program) as f64 / n as f64,
        t.elapsed().as_secs_f64() * 1e9 / n as f64
    );
    let mut v = vec![];
    s.audit(&flash, &mut v);
    flash.audit(&mut v);
    println!("{v:?}");
}
