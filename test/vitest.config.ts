import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  // The client is imported by the name of its package, which npm run build makes of the same sources.
  resolve: {
    alias: {
      '@ipn-processor/client': fileURLToPath(new URL('../client/src/index.ts', import.meta.url)),
    },
  },
  // The package's own name leads to its sources; packages are resolved as Node does it: what they offer to
  // bundlers as `module` need not run here.
  ssr: {
    resolve: {
      conditions: ['ipn-processor-source', 'node', 'development|production'],
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/nightly/**'],
    globalSetup: ['test/support/start-database.ts', 'test/support/build-programs.ts'],
    setupFiles: ['test/support/fixed-seed.ts', 'test/support/setup.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Twice the two processors of a small machine: many tests wait, for a time-out or for a program that starts. With three
    // workers a fifth of the processors' time was left over.
    maxWorkers: 4,
    // What a file imports is there for the next one: loading it anew for each took half of all the time.
    isolate: false,
    // The driver's first question of a session, cut off by a test: it rejects what cannot be caught, as
    // `tolerateLostConnections` in src/platform/postgres/pool.ts describes. What waits for the session gets its own error.
    onUnhandledError: (error) => !('query' in error && String(error.query).includes('typarray')),
  },
})
