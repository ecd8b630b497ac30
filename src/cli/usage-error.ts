/** A call that cannot be carried out as it was typed: one line for the person who typed it, exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
