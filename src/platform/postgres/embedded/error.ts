/** The embedded Postgres cannot run. The message is one line for an operator, with what to do next. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message.replaceAll(/\s+/g, ' ').trim(), options)
    this.name = 'EmbeddedPostgresError'
  }
}
