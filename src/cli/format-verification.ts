import { FINDINGS, type Finding } from '../audit-chain/findings.ts'
import type { Verification } from '../audit-chain/verify-chains.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { formatTable } from './format-table.ts'

const HEADINGS = ['MERCHANT', 'VERIFIED', 'AFTER', 'HEAD', 'AT', 'FINDINGS']

/** Formats the chains as a table, and below it every finding that is listed. */
export function formatVerification({ chains, outside }: Verification): string {
  const rows = chains.map((one) => [
    one.merchantCode,
    String(one.verified),
    String(one.startPosition),
    `${one.headPosition}:${one.headHash}`,
    toIso(one.headAt) ?? '-',
    String(one.count),
  ])
  const lines = [
    ...chains.flatMap(({ merchantCode, findings }) =>
      findings.map((one) => formatFinding(merchantCode, one)),
    ),
    ...outside.findings.map((one) => formatFinding('outside', one)),
  ]
  const below = lines.length > 0 ? `\n${lines.join('\n')}\n` : ''
  return `${formatTable(HEADINGS, rows)}${below}`
}

function formatFinding(place: string, { kind, position, entryId }: Finding): string {
  const where = [
    ...(position === null ? [] : [`position ${position}`]),
    ...(entryId === null ? [] : [`entry ${entryId}`]),
  ]
  return `${[place, ...where].join(', ')}: ${kind}: ${FINDINGS[kind]}`
}

/** Describes the result in a sentence. */
export function describeVerification({ chains, outside, waiting }: Verification): {
  text: string
  isIntact: boolean
} {
  const count = chains.reduce((sum, one) => sum + one.count, outside.count)
  const verified = chains.reduce((sum, one) => sum + one.verified, 0)
  const young = waiting > 0 ? `, ${waiting} not chained yet` : ''
  const result =
    count === 0
      ? 'the audit log is intact'
      : `${count} ${count === 1 ? 'finding' : 'findings'}: the audit log may have been changed`
  return { text: `${result}: ${verified} entries verified${young}`, isIntact: count === 0 }
}
