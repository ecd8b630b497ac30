import { explainHash, readGivenHash } from '../gateway/diagnose.ts'
import { verifySecureHash } from '../gateway/signature.ts'
import { type Job, type Options, prepare, type Surroundings } from './prepare.ts'
import { explainSigning, findUnsignable, hideSecrets, listRemarks } from './report.ts'

const COMMANDS = {
  ipn: 'PAY',
  'refund-ipn': 'REFUND',
  query: 'QUERY_PT',
  'refund-request': 'REFUND',
}

/**
 * `verify`: whether the message on standard input carries the right hash, and if not, which slip of its
 * sender would explain the one it carries.
 * @throws UsageError, ConfigError
 */
export async function verify(
  around: Surroundings,
  options: Options,
): Promise<{ valid: boolean; text: string }> {
  const job = await prepare(around, options)
  const { params, rule, secret } = job
  const given = params[`${rule.prefix}_SecureHash`]
  const valid = verifySecureHash(params, [secret], rule) === 'verified'
  const unsignable = findUnsignable(job)
  const lines = [
    ...(valid ? describeValid(given) : describeInvalid(job, given)),
    ...listRemarks(job),
    '',
    ...(unsignable ? [unsignable] : explainSigning(job)),
  ]
  return { valid, text: hideSecrets(`${lines.join('\n')}\n`, job) }
}

function describeValid(given: unknown): string[] {
  const upper = typeof given === 'string' && given !== given.toLowerCase()
  const note = 'It is in upper case, which is accepted; the specification shows lower case.'
  return ['VALID', ...(upper ? [note] : [])]
}

function describeInvalid(job: Job, given: unknown): string[] {
  const name = `${job.rule.prefix}_SecureHash`
  if (given === undefined || given === null || given === '') {
    return ['NOT VALID', `${name} is missing or empty.`]
  }
  const { hash, oddity } = readGivenHash(given)
  const odd = oddity ? [`${name}: ${oddity}.`] : []
  const slips = hash === undefined ? undefined : explainHash(hash, describeMaterial(job))
  if (slips) return ['NOT VALID', ...odd, ...slips.map(writeSlip)]
  if (hash === undefined) return ['NOT VALID', ...odd]
  return ['NOT VALID', ...odd, ...WRONG_SECRET]
}

const WRONG_SECRET = [
  'No usual slip explains this hash: it is most likely a wrong secret, or a value changed after signing.',
  'Compare the secret with its issuer, and the values below with those that the sender hashed.',
]

function writeSlip(what: string, at: number): string {
  return at === 0 ? `It was made ${what}.` : `It was also made ${what}.`
}

function describeMaterial(job: Job) {
  const account = job.accountCode === undefined ? {} : { MerchantCode: job.accountCode }
  return { ...job, constants: { Version: '1', Command: COMMANDS[job.kind], ...account } }
}
