import { type Config, readConfig } from '../config/config.ts'
import { openDatabase } from '../db/client.ts'
import type { Overview } from '../health/overview.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { findCheckedDatabase, runCheck } from './check.ts'
import type { Finding } from './check-hosts.ts'
import { command } from './command.ts'
import { createReport, type Diagnosis, judge } from './diagnosis.ts'
import { OF_SERVER } from './examine-server.ts'
import { OF_WORK, readWork } from './examine-work.ts'
import { explainError } from './explain.ts'

/** Examines an installation. It changes nothing, and sends nothing to the gateway. */
export const DOCTOR = command({
  name: 'doctor',
  description: 'examine an installation: what is wrong, how bad it is, and what to do about it',
  input: {},
  examples: `Examples:
  cli doctor                    what is wrong, and what to do about it
  cli doctor --json | jq '.findings[] | select(.severity != "info")'`,
  async run(cli) {
    const report = createReport(cli)
    // What does not prevent a start is examined below, with its own severity. What was skipped is no finding.
    const isLater = ({ name, status }: Finding) =>
      status === 'skipped' || name === 'restore' || (name === 'schema' && status === 'ok')
    const onFinding = (one: Finding) => isLater(one) || report.add(diagnose(one))
    const { checks } = await runCheck(cli.env, { onFinding })
    // A database that cannot be used or read cannot be examined.
    const isUsable = (['settings', 'database', 'schema', 'key'] as const).every(
      (name) => checks.find((one) => one.name === name)?.status !== 'failed',
    )
    if (isUsable) await examineDatabase(readConfig(cli.env), report.add)
    return report.end()
  },
})

/** A certificate should be renewed this long before its end (ms). */
const RENEWED_MS = 21 * 86_400_000

/** Makes a diagnosis of a finding. The detail of a failed check says what to do after its first colon or comma. */
export function diagnose({ name: id, status, detail, expires = '9999' }: Finding): Diagnosis {
  if (status === 'failed') {
    const parts = /^(.{12,}?)[:;] (.+)$/s.exec(detail) ?? /^(.{12,}?), (.+)$/s.exec(detail) ?? []
    const [, finding = detail, action = 'correct the setting; docs/reference.md has them all'] =
      parts
    return { id, severity: 'error', finding, action }
  }
  const isEnding = Date.parse(expires) - Date.now() < RENEWED_MS
  const action = "have the gateway's operator renew it, before every call fails"
  return { id, ...judge(detail, isEnding && action) }
}

/** The limit for one examination (ms). */
const EXAMINED_MS = 10_000

async function examineDatabase(config: Config, add: (one: Diagnosis) => void): Promise<void> {
  const url = findCheckedDatabase(config)
  if (typeof url === 'object') {
    const action = 'nothing in the database was examined: start the service, and run this again'
    return add({ id: 'database', ...judge(url.detail, action) })
  }
  const { sql, close } = openDatabase(url, 1)
  try {
    let work: Promise<Overview> | undefined
    const patient = { sql, config, readWork: () => (work ??= readWork(sql, config)) }
    for (const [id, examine] of Object.entries({ ...OF_SERVER, ...OF_WORK })) {
      try {
        const found = [await withTimeout(EXAMINED_MS, examine(patient))].flat()
        for (const one of found) add({ id, ...one })
        if (id === 'schema' && found.some(({ action }) => action)) return
      } catch (error) {
        const [finding = ''] = explainError(error).split('\n')
        add({ id, ...judge(finding, 'this could not be examined: try again') })
      }
    }
  } finally {
    await close()
  }
}
