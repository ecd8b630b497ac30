import { defineConfig, mergeConfig } from 'vitest/config'
import { reportParts } from './nightly/parts.ts'
import suite from './vitest.config.ts'

const report = process.env.NIGHTLY_PARTS
/** What Vitest prints by itself, and the parts for test/nightly/main.ts. */
const reporters =
  report === undefined
    ? []
    : [
        'default',
        ...(process.env.GITHUB_ACTIONS === 'true' ? ['github-actions'] : []),
        reportParts(report),
      ]

/** The long tests: each loads the whole machine, so they run one after the other, apart from the suite. */
export default mergeConfig(
  { ...suite, test: { ...suite.test, include: [], exclude: [] } },
  defineConfig({
    test: {
      include: ['test/nightly/**/*.test.ts'],
      maxWorkers: 1,
      reporters,
    },
  }),
)
