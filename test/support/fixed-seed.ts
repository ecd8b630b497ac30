import fc from 'fast-check'

/** Properties play the same values each time: a change is judged by the same ones. `PROPERTY_SEED` chooses others. */
fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) })
