/** What is checked, in the order of the output. */
export type CheckName = 'settings' | 'database' | 'schema' | 'key' | 'clock' | 'gateway' | 'tokens'

/** The result of a check. `detail` is one line: what was found, and after a failure what to do; it holds no secret. */
export type Finding = {
  name: CheckName
  /** `skipped`: there is nothing to check, or an earlier check failed that this one depends on. */
  status: 'ok' | 'failed' | 'skipped'
  detail: string
}

export type CheckResult = {
  /** No check failed. */
  ok: boolean
  version: string
  commit: string | undefined
  checks: readonly Finding[]
}
