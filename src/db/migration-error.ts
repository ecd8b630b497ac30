/** Why the schema is not current, and what to do about it; shown to operators without a stack. */
export class MigrationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'MigrationError'
  }
}
