import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Writes the commit that is built to `dist/commit.txt`, which the start logs: `COMMIT` from the environment, or else
 * that of the repository. Without either the file is empty.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url))

function findCommit(): string {
  if (process.env.COMMIT) return process.env.COMMIT
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    return ''
  }
}

writeFileSync(`${ROOT}/dist/commit.txt`, findCommit())
