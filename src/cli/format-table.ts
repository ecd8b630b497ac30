/** Formats rows under their headings, each column as wide as its longest cell. */
export function formatTable(headings: readonly string[], rows: readonly string[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => clean(row[column] ?? '').length)),
  )
  return [headings, ...rows]
    .map((row) => row.map((cell, column) => clean(cell).padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Replaces control characters, which could break the line or control the terminal. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '?')
}
