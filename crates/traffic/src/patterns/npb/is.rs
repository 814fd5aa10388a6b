//! IS: sends keys to the ranks that sort them.

use topolane_fabric::InputError;

use super::{INTEGER, of_class};
use crate::patterns::allreduce::{entries, reduce};
use crate::patterns::alltoall::everybody;
use crate::patterns::phase::{Draft, Phase, PhaseKind};

/// Iterations of a run.
const ITERATIONS: f64 = 10.0;

/// Test keys that are sent together with the bucket sizes.
const TEST_KEYS: f64 = 5.0;

/// One iteration is one ranking. Bucket sizes are summed (allreduce); key counts and keys go from every rank to every
/// other (`MPI_Alltoall`, `MPI_Alltoallv`). All ranks draw keys from the same distribution and cut it into equal parts,
/// so each rank sends the same number to every other. The verification happens once in a run of ten iterations, so a
/// tenth of it is added: the largest key to the next rank. Class D has 2^29 keys for every four ranks of the smallest
/// number it runs on: 2^31.
pub(in crate::patterns) fn is(
    ranks: u32,
    values: &[f64],
    _: u64,
) -> Result<Vec<Phase>, InputError> {
    let keys = 2f64.powi(of_class(values, [16, 20, 23, 25, 27, 31]));
    let buckets: f64 = of_class(values, [512.0, 1024.0, 1024.0, 1024.0, 1024.0, 1024.0]);
    let count = f64::from(ranks);

    let mut sizes = Draft::new(ranks, entries(ranks))?;
    reduce(&mut sizes, ranks, (buckets + TEST_KEYS) * INTEGER);
    let mut exchange = Draft::new(ranks, 2 * (u64::from(ranks) - 1))?;
    everybody(&mut exchange, ranks, INTEGER, 1.0);
    everybody(&mut exchange, ranks, keys / count / count * INTEGER, 1.0);
    let mut largest = Draft::new(ranks, 1)?;
    for rank in 1..ranks {
        largest.repeat(rank - 1, rank, INTEGER, 1.0 / ITERATIONS);
    }
    Ok(vec![
        sizes.phase("bucket sizes", PhaseKind::Collective)?,
        exchange.phase("keys", PhaseKind::Collective)?,
        largest.phase("verification", PhaseKind::PointToPoint)?,
    ])
}
