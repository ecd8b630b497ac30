/** Runs that failed once, by seed and path: each is played again every time. */
export const FAILED_SEEDS = [
  // A lost refund's growth was matched to an external one that may belong to the first sight.
  { seed: 7, path: '9' },
  // A portal refund that moved was notified as failed, and its growth was taken for one of ours.
  { seed: 11, path: '121' },
  // One of ours in review for lack of evidence, and a portal refund of its amount that nobody had notified.
  { seed: 69079091, path: '97' },
] as const
