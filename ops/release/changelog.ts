/** The heading `Unreleased`, as a link or not, and what follows up to the next release, link definitions or the end. */
const UNRELEASED = /^## (\[?)Unreleased\]?[ \t]*\n(.*?)(?=^## |^\[[^\]\n]+\]: |(?![\s\S]))/ms
/** The definition that a linked heading has at the end of the page. */
const COMPARISON = /^\[Unreleased\]: (\S+\/compare\/)(\S+)\.\.\.HEAD$/m

/** Returns what a changelog lists as unreleased; undefined if there is no such section, or no entry in it. */
export function readUnreleased(changelog: string): string | undefined {
  const entries = UNRELEASED.exec(changelog)?.[2]?.trim()
  return entries && /^[-*] \S/m.test(entries) ? entries : undefined
}

/**
 * Moves what is unreleased below a heading of its own, and leaves an empty section for what comes next. Where headings
 * link to comparisons, the new one does as well.
 * @param date `YYYY-MM-DD`
 */
export function releaseUnreleased(changelog: string, version: string, date: string): string {
  const moved = changelog.replace(UNRELEASED, (_, bracket: string, entries: string) => {
    const [unreleased, released] = bracket
      ? ['[Unreleased]', `[${version}]`]
      : ['Unreleased', version]
    return `## ${unreleased}\n\n## ${released} - ${date}\n\n${entries.trim()}\n\n`
  })
  const compared = moved.replace(
    COMPARISON,
    (_, base: string, last: string) =>
      `[Unreleased]: ${base}v${version}...HEAD\n[${version}]: ${base}${last}...v${version}`,
  )
  return `${compared.trimEnd()}\n`
}
