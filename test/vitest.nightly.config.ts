import { defineConfig, mergeConfig } from 'vitest/config'
import suite from './vitest.config.ts'

/** The long tests: each loads the whole machine, so they run one after the other, apart from the suite. */
export default mergeConfig(
  { ...suite, test: { ...suite.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ['test/nightly/**/*.test.ts'],
      maxWorkers: 1,
    },
  }),
)
