/** Marks the strings that stand for numbers; no regular text begins with it. */
const MARK = '\u0000#'

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * Parses JSON and keeps the numbers of the named members as strings, digit for digit. `JSON.parse` alone
 * would round `10000.50` to the nearest binary fraction and lose its zero.
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
