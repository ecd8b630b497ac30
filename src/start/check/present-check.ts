import type { CheckResult, Finding } from './types.ts'

const STATUS: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  failed: 'FAIL',
  skipped: 'skip',
}

/** Formats the result: a line for each finding, or JSON for programs. */
export function presentCheck(result: CheckResult, json: boolean): string {
  if (json) return `${JSON.stringify(result, null, 2)}\n`
  return result.checks
    .map(
      ({ name, status, detail }) =>
        `${STATUS[status].padEnd(5)} ${name.padEnd(9)} ${clean(detail)}\n`,
    )
    .join('')
}

/** Replaces control characters, which could break the line or control the terminal. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}
