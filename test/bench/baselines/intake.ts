import { storeArrivals } from '../../../src/ipn/store-arrivals.ts'
import { serveBaseline } from './serve-baseline.ts'

/** Baselines of the intake: the same stack and checks, with `one insert per request`, or storing `nothing`. */
await serveBaseline((ctx) => ({
  ...ctx,
  inbox: {
    store: async (arrival) => {
      if (process.env.STORES !== 'nothing') await storeArrivals(ctx.sql, [arrival])
    },
    isFull: () => false,
    readGauges: () => ({ waiting: 0, characters: 0 }),
    drain: () => Promise.resolve(),
  },
}))
