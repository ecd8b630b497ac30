/**
 * A row of the ledger: a defect that one named test has to notice. A guard that nobody notices missing is none, and a test
 * may be deleted as long as every row still turns another one red.
 */
export type Guard = {
  /** The file with the guard, from the root of the project. */
  file: string
  /** What stands in it exactly once. */
  text: string
  /** What stands there instead; the project still compiles. */
  mutation: string
  /** The file of both tests. */
  test: string
  /** The test that an assertion fails then: the names of its `describe` blocks and its own, joined by spaces. */
  claim: string
  /** A test of the same file that passes all the same, so that the mutation did not break everything. */
  control: string
}
