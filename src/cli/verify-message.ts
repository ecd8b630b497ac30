import { explainHash, readGivenHash } from '../gateway/explain-hash.ts'
import { verifySecureHash } from '../gateway/signature.ts'
import { explainSigning, findUnsignable, listWarnings, redactSecrets } from './explain-signing.ts'
import {
  type CommandInput,
  prepareSigning,
  type SigningJob,
  type SigningOptions,
} from './prepare-signing.ts'

const COMMANDS = {
  ipn: 'PAY',
  'refund-ipn': 'REFUND',
  query: 'QUERY_PT',
  'refund-request': 'REFUND',
}

/**
 * Runs `verify`: checks the hash of the message on standard input, and explains a wrong hash by the mistakes its
 * sender may have made.
 * @throws UsageError, ConfigError
 */
export async function verifyMessage(
  input: CommandInput,
  options: SigningOptions,
): Promise<{ valid: boolean; text: string }> {
  const job = await prepareSigning(input, options)
  const { params, rule, secret } = job
  const given = params[`${rule.prefix}_SecureHash`]
  const valid = verifySecureHash(params, [secret], rule) === 'verified'
  const unsignable = findUnsignable(job)
  const lines = [
    ...(valid ? describeValid(given) : describeInvalid(job, given)),
    ...listWarnings(job),
    '',
    ...(unsignable ? [unsignable] : explainSigning(job)),
  ]
  return { valid, text: redactSecrets(`${lines.join('\n')}\n`, job) }
}

function describeValid(given: unknown): string[] {
  const isUpperCase = typeof given === 'string' && given !== given.toLowerCase()
  const warning =
    'The hash is in upper case, which is accepted; the specification shows lower case.'
  return ['VALID', ...(isUpperCase ? [warning] : [])]
}

function describeInvalid(job: SigningJob, given: unknown): string[] {
  const name = `${job.rule.prefix}_SecureHash`
  if (given === undefined || given === null || given === '') {
    return ['NOT VALID', `${name} is missing or empty.`]
  }
  const { hash, oddity } = readGivenHash(given)
  const form = oddity ? [`${name}: ${oddity}.`] : []
  const mistakes = hash === undefined ? undefined : explainHash(hash, describeMaterial(job))
  if (mistakes) return ['NOT VALID', ...form, ...mistakes.map(formatMistake)]
  if (hash === undefined) return ['NOT VALID', ...form]
  return ['NOT VALID', ...form, ...WRONG_SECRET]
}

const WRONG_SECRET = [
  'No common mistake explains this hash: most likely the secret is wrong, or a value changed after signing.',
  'Compare the secret with the one issued, and the values below with those the sender hashed.',
]

function formatMistake(mistake: string, index: number): string {
  return index === 0 ? `The hash was computed ${mistake}.` : `It was also computed ${mistake}.`
}

function describeMaterial(job: SigningJob) {
  const account = job.accountCode === undefined ? {} : { MerchantCode: job.accountCode }
  return { ...job, constants: { Version: '1', Command: COMMANDS[job.kind], ...account } }
}
