import { afterAll, afterEach, expect } from 'vitest'
import { cleanups } from './cleanups.ts'
import { takeFaults } from './conformance/faults.ts'

/** Fails every test in which a response of the service violated the API's document. */
async function expectConformance(): Promise<void> {
  expect(await takeFaults(), 'responses that violate the API document').toEqual([])
}

// It runs after the hooks of the file: the first that was registered is the last to run.
afterEach(async () => {
  for (const cleanUp of cleanups) await cleanUp()
  await expectConformance()
})
afterAll(expectConformance)
