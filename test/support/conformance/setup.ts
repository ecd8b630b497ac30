import { afterAll, afterEach, expect } from 'vitest'
import { takeFaults } from './faults.ts'

/** Fails every test in which a response of the service violated the API's document. */
async function expectConformance(): Promise<void> {
  expect(await takeFaults(), 'responses that violate the API document').toEqual([])
}

afterEach(expectConformance)
afterAll(expectConformance)
