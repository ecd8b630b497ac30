/** Returns the code of an error of the system, a driver or the database, such as `ECONNREFUSED` or an SQLSTATE. */
export function readErrorCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
