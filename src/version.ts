import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** Resolved by the package's own name, which works wherever the build is located. */
const file: unknown = createRequire(import.meta.url)('ipn-processor/package.json')

/** This program's version and licence, from its package.json. */
export const PACKAGE = z.object({ version: z.string(), license: z.string() }).parse(file)

/** The commit that was built, as the build wrote it beside this file; undefined in the source tree. */
export const COMMIT: string | undefined = readCommit(new URL('./commit.txt', import.meta.url))

/** Formats the version for people, with the first digits of the commit. */
export function formatVersion(commit: string | undefined = COMMIT): string {
  return `ipn-processor ${PACKAGE.version}${commit ? ` (${commit.slice(0, 12)})` : ''}`
}

/** How the command line of this program is called, for messages that name a command. */
export const CLI = nameCli(import.meta.url, process.cwd())

/**
 * Names the command line as it is called in a folder: the sources run as a script of npm, a build as its file.
 * @param ownUrl of a file beside the folder `cli`
 */
export function nameCli(ownUrl: string, folder: string): string {
  if (ownUrl.endsWith('.ts')) return 'npm run -s cli --'
  return `node ${relative(folder, fileURLToPath(new URL('cli/main.js', ownUrl)))}`
}

function readCommit(from: URL): string | undefined {
  try {
    return /^[0-9a-f]{7,64}(?=\s*$)/.exec(readFileSync(from, 'utf8'))?.[0]
  } catch {
    return undefined
  }
}
