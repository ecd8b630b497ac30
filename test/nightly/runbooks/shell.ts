import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { buildSpawnOptions } from '../../../src/platform/postgres/embedded-binaries.ts'
import { findServerUser } from '../../../src/platform/postgres/embedded-cluster.ts'
import { pickPort } from '../../support/ports.ts'
import { findDebianPrograms } from '../../support/postgres-server.ts'
import { readSnippets } from '../packaging/read-snippets.ts'

/** Debian's programs of Postgres; undefined on a machine without them, where no runbook is played. */
export const programs = findDebianPrograms()

/** An operator's shell, as the user of the database server. */
export type Shell = {
  /** What its programs find in their environment; also what lines before have exported. */
  env: Record<string, string>
  /**
   * Plays lines in bash, of which each has to succeed.
   * @param codes the exit codes of the last line that are no failure
   * @returns what they printed
   */
  play(lines: string, codes?: readonly number[]): Promise<string>
}

/** The lines of a section of docs/operations.md, one text for each of its blocks. */
export const readLines = (title: string) => readSnippets('operations.md', title, 'sh')

/** The service and its command line are those that this run has built. */
const PRELUDE = `
npm() { shift 4; command node "$CLI_PROGRAM" "$@"; }
node() { shift; command node "$SERVICE_PROGRAM" "$@"; }
trap 'env -0 > "$EXPORTED"' EXIT
`

/** A folder that everybody may write to, and that is removed after the test. */
function makeOpenFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'ipn-runbook-'))
  chmodSync(folder, 0o777)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function openShell(given: Record<string, string>): Shell {
  const folder = makeOpenFolder()
  const user = process.getuid?.() === 0 ? findServerUser() : {}
  const exported = join(folder, 'exported')
  let played = 0
  const shell: Shell = {
    env: {
      PATH: `${programs}:${process.env.PATH}`,
      CLI_PROGRAM: inject('programs').cli,
      SERVICE_PROGRAM: inject('programs').service,
      EXPORTED: exported,
      ...given,
    },
    async play(lines, codes = [0]) {
      played += 1
      const output = join(folder, `output-${played}`)
      // Not a pipe: a server that the lines start would hold it open.
      const file = openSync(output, 'a')
      const began = performance.now()
      const child = spawn('bash', ['-ec', PRELUDE + lines], {
        ...buildSpawnOptions(user),
        cwd: folder,
        env: shell.env,
        stdio: ['ignore', file, file],
      })
      closeSync(file)
      await once(child, 'exit')
      const printed = readFileSync(output, 'utf8')
      const seconds = ((performance.now() - began) / 1_000).toFixed(1)
      console.info(`${lines.trim().replace(/^/gm, '$ ')}\n${printed}(${seconds} s)`)
      if (!codes.includes(child.exitCode ?? -1)) {
        throw new Error(`${lines}\nended with ${child.exitCode}:\n${printed}`)
      }
      const pairs = readFileSync(exported, 'utf8').split('\0').map(splitPair)
      shell.env = Object.fromEntries(pairs.filter(([name]) => name !== ''))
      return printed
    },
  }
  return shell
}

function splitPair(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return [pair.slice(0, at), pair.slice(at + 1)]
}

/**
 * Creates an empty server of Debian's, and the shell of its machine.
 * @param parent the folder of its disk
 */
export async function startServer(parent?: string): Promise<{ url: string; shell: Shell }> {
  const { url, shell } = await openMachine(parent)
  await shell.play(`initdb -D "$PGDATA" -U postgres -A trust -E UTF8 --locale=C
    printf "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\n" >> "$PGDATA/postgresql.conf"
    pg_ctl start -D "$PGDATA" -w -l "$PGDATA.log"`)
  return { url, shell }
}

/** Makes the server of a machine end at once, as a lost machine does. */
export const STOP = 'pg_ctl stop -D "$PGDATA" -m immediate || true'

/** A machine with room for a server, whose port comes from its environment. */
export async function openMachine(parent?: string): Promise<{ url: string; shell: Shell }> {
  const folder = makeOpenFolder(parent)
  const port = await pickPort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const shell = openShell({
    PGDATA: join(folder, 'data'),
    PGPORT: port,
    BACKUP: join(folder, 'backup'),
    DATABASE_URL: url,
  })
  onTestFinished(async () => void (await shell.play(STOP)))
  return { url, shell }
}
