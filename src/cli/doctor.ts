import type { Command } from 'commander'
import { type Config, readConfig } from '../config/config.ts'
import { openDatabase } from '../db/client.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { findCheckedDatabase, runCheck } from './check.ts'
import type { Expiring, Finding } from './check-hosts.ts'
import { OF_SERVER } from './diagnose-server.ts'
import { OF_WORK } from './diagnose-work.ts'
import type { Diagnosis, Severity } from './diagnosis.ts'
import { explainError } from './explain.ts'
import { type Json, jsonOption } from './options.ts'
import type { Cli } from './print.ts'

const EXAMPLES = `
Examples:
  npm run -s cli -- doctor                    what is wrong, and what to do about it
  npm run -s cli -- doctor --json | jq '.findings[] | select(.severity != "info")'
`

/** Adds `doctor`, which changes nothing and sends nothing to the gateway. Exit code 1: something is an error. */
export function addDoctorCommand(program: Command, { env, emit, print, setExitCode }: Cli): void {
  program
    .command('doctor')
    .description('examine an installation: what is wrong, how bad it is, and what to do about it')
    .addOption(jsonOption())
    .addHelpText('after', EXAMPLES)
    .action(async ({ json }: Json) => {
      const findings: Diagnosis[] = []
      const add = (one: Diagnosis) => {
        findings.push(one)
        if (!json) print(present(one))
      }
      // Whether anything is sent is examined below, as what it is: a start succeeds all the same.
      const onFinding = (one: Finding & Expiring) => one.name !== 'restore' && add(diagnose(one))
      const { checks } = await runCheck(env, { onFinding })
      // Without a database that can be used, and read, there is nothing to examine in it.
      const isUsable = (['settings', 'database', 'schema', 'key'] as const).every(
        (name) => checks.find((one) => one.name === name)?.status !== 'failed',
      )
      if (isUsable) await examineDatabase(readConfig(env), add)
      const ok = findings.every(({ severity }) => severity !== 'error')
      if (!ok) setExitCode(1)
      if (json) emit(json, { ok, findings }, '')
      else print(summarize(findings))
    })
}

const SHOWN: Readonly<Record<Severity, string>> = { info: 'ok', warning: 'WARN', error: 'ERROR' }

/** Formats a finding as one line. */
export function present({ id, severity, finding, action }: Diagnosis): string {
  const text = action === null ? finding : `${finding}; ${action}`
  return `${SHOWN[severity].padEnd(6)}${id.padEnd(14)}${text.replace(/\p{Cc}/gu, ' ')}\n`
}

export function summarize(findings: readonly Diagnosis[]): string {
  const count = (wanted: Severity) => findings.filter(({ severity }) => severity === wanted).length
  return `${findings.length} findings: ${count('error')} errors, ${count('warning')} warnings\n`
}

const AT_THE_SETTINGS = 'correct the setting; docs/reference.md has them all'

/** Certificates are renewed weeks before their end (ms). */
const RENEWED_MS = 21 * 86_400_000

/** What a check found, as a diagnosis: a failed one says what to do after a colon. */
export function diagnose({ name: id, status, detail, expires }: Finding & Expiring): Diagnosis {
  if (status === 'failed') {
    const [, finding = detail, action = AT_THE_SETTINGS] =
      /^(.{12,}?)[:;,] (.+)$/s.exec(detail) ?? []
    return { id, severity: 'error', finding, action }
  }
  const isEnding = expires !== undefined && expires.getTime() - Date.now() < RENEWED_MS
  if (!isEnding) return { id, severity: 'info', finding: detail, action: null }
  const action = "have the gateway's operator renew it, before every call fails"
  return { id, severity: 'warning', finding: detail, action }
}

/** By then a single question has an answer, or never gets one (ms). */
const EXAMINED_MS = 10_000

async function examineDatabase(config: Config, add: (one: Diagnosis) => void): Promise<void> {
  const url = findCheckedDatabase(config)
  if (typeof url === 'object') return
  const { sql, close } = openDatabase(url, 1)
  try {
    for (const [id, examine] of Object.entries({ ...OF_SERVER, ...OF_WORK })) {
      try {
        const found = await withTimeout(EXAMINED_MS, examine({ sql, config }))
        for (const one of found) add({ id, ...one })
      } catch (error) {
        const [finding = ''] = explainError(error).split('\n')
        add({ id, severity: 'warning', finding, action: 'this could not be examined: try again' })
      }
    }
  } finally {
    await close()
  }
}
