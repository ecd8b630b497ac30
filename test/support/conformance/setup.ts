import { afterAll, afterEach, expect } from 'vitest'
import { takeFaults } from './faults.ts'

/** No test passes in which the service gave an answer that is not as the API's document says. */
async function expectConformance(): Promise<void> {
  expect(await takeFaults(), 'answers that are not as the document says').toEqual([])
}

afterEach(expectConformance)
afterAll(expectConformance)
