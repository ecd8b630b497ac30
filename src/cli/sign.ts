import { type Options, prepare, type Surroundings } from './prepare.ts'
import { explainSigning, findUnsignable, hideSecrets, listRemarks } from './report.ts'
import { UsageError } from './usage-error.ts'

/**
 * `sign`: how the hash of the message on standard input comes about (specification 5.2), and the hash.
 * @throws UsageError, ConfigError
 */
export async function sign(around: Surroundings, options: Options): Promise<string> {
  const job = await prepare(around, options)
  const unsignable = findUnsignable(job)
  if (unsignable) throw new UsageError(unsignable)
  const remarks = listRemarks(job)
  const lines = [...explainSigning(job), ...(remarks.length > 0 ? ['', ...remarks] : [])]
  return hideSecrets(`${lines.join('\n')}\n`, job)
}
