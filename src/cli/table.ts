/** Rows under their headings, in columns as wide as they need to be. */
export function writeTable(headings: readonly string[], rows: readonly string[][]): string {
  const widths = headings.map((heading, at) =>
    Math.max(heading.length, ...rows.map((row) => clean(row[at] ?? '').length)),
  )
  return [headings, ...rows]
    .map((row) => row.map((cell, at) => clean(cell).padEnd(widths[at] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Control characters would break the line, or more, on a terminal. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '?')
}
