import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EmbeddedPostgresError } from './error.ts'

const UPGRADE = fileURLToPath(
  new URL('../../../../ops/upgrade-embedded-postgres.sh', import.meta.url),
)

/**
 * Checks that the programs can run the cluster, if there is one: each major version of Postgres has its own format.
 * Changes nothing.
 * @param major of the programs
 * @param findBin returns the folder of the programs, as the owner of the cluster can run them
 * @throws EmbeddedPostgresError with the command that upgrades the cluster
 */
export function requireSameMajor(cluster: string, major: string, findBin: () => string): void {
  const stored = readMajor(cluster)
  if (stored === undefined || stored === major) return
  const problem = `the database in ${cluster} was made by Postgres ${stored}, but the embedded one is Postgres ${major}`
  if (Number(stored) > Number(major)) {
    throw new EmbeddedPostgresError(
      `${problem}: start the release that made it, set another DATA_DIR, or set DATABASE_URL`,
    )
  }
  const command = ['sh', UPGRADE, cluster, `/usr/lib/postgresql/${stored}/bin`, findBin()]
  throw new EmbeddedPostgresError(
    `${problem}; nothing was changed. Upgrade it with \`${command.map(quote).join(' ')}\`, where the second folder has to hold the programs of Postgres ${stored}; or set another DATA_DIR, or set DATABASE_URL`,
  )
}

function readMajor(cluster: string): string | undefined {
  try {
    return readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim()
  } catch {
    // There is none, or what follows reports why it cannot be read.
    return undefined
  }
}

/** Quotes an argument for a shell, where it has to be. */
function quote(text: string): string {
  return /^[\w./@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
