/** Marks a number's text among the other texts; nothing readable begins with it. */
const MARK = '\u0000#'

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * Parses JSON; the numbers of the named members become their own text, digit for digit. `JSON.parse` alone
 * would make `10000.50` the binary fraction nearest to it, and forget its zero.
 * @throws SyntaxError
 */
export function parseDecimals(json: string, names: readonly string[]): unknown {
  const mark = JSON.stringify(MARK).slice(1, -1)
  const marked = json.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') ? token : `"${mark}${token}"`,
  )
  return JSON.parse(marked, (name, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) return value
    const digits = value.slice(MARK.length)
    return names.includes(name) ? digits : Number(digits)
  })
}
