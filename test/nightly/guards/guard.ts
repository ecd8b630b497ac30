import { z } from 'zod'

/**
 * A row of the ledger: a defect that one named test has to notice. A guard that nobody notices missing is none, and a test
 * may be deleted as long as every row still turns another one red.
 */
export const Guard = z.strictObject({
  /** The file with the guard, from the root of the project. */
  file: z.string(),
  /** What stands in it exactly once. */
  text: z.string(),
  /** What stands there instead; the project still compiles. */
  mutation: z.string(),
  /** The file of both tests. */
  test: z.string(),
  /** The test that an assertion fails then: the names of its `describe` blocks and its own, joined by spaces. */
  claim: z.string(),
  /** A test of the same file that passes all the same, so that the mutation did not break everything. */
  control: z.string(),
})
export type Guard = z.infer<typeof Guard>

/**
 * Rows that share members: these stand in front of them, once.
 * @param rows what differs
 */
export function guards<K extends keyof Guard>(
  shared: Pick<Guard, K>,
  rows: readonly Omit<Guard, K>[],
): Guard[] {
  return rows.map((row) => Guard.parse({ ...shared, ...row }))
}
