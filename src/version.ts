import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** The package's own name resolves wherever the build is located. */
const file: unknown = createRequire(import.meta.url)('ipn-processor/package.json')

export const PACKAGE = z.object({ version: z.string(), license: z.string() }).parse(file)

/** The commit that was built, from a file that the build writes; undefined in the source tree. */
export const COMMIT: string | undefined = readCommit(new URL('./commit.txt', import.meta.url))

export function formatVersion(commit: string | undefined = COMMIT): string {
  return `ipn-processor ${PACKAGE.version}${commit ? ` (${commit.slice(0, 12)})` : ''}`
}

/** How the command line is called, for messages that name a command. */
export const CLI = nameCli(import.meta.url, process.cwd())

/**
 * Returns how the command line is called in a folder: the sources as an npm script, a build as a file.
 * @param ownUrl the URL of a file beside the folder `cli`
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
