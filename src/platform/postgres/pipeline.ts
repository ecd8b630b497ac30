/**
 * Sends several statements of one unit of work together, without waiting for results in between. They
 * share one connection: Postgres runs them one after the other, in the order of the arguments, and each
 * sees what those before it wrote.
 *
 * Pass either bare statements or calls of functions whose first `await` is a statement, not both kinds: a
 * function sends its statement when it is called, a bare statement is sent only here. The second statement
 * of a function runs after the first ones of all arguments.
 * @param statements `false` sends nothing
 * @returns the results, in the order of the arguments
 * @throws the first error; the errors of the statements after it are dropped
 */
export function pipeline<T extends readonly (PromiseLike<unknown> | false)[]>(
  ...statements: T
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  return Promise.all(statements)
}
