/** Returns whether a text has no control character and no lone surrogate: neither logs nor Postgres take those. */
export function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

/** Returns a message that is fit for a log line and a column; empty when it is not a string. */
export function toPrintable(message: unknown): string {
  if (typeof message !== 'string') return ''
  return message.toWellFormed().replace(/\p{Cc}+/gu, ' ')
}
