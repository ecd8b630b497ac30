import { explainSigning, findUnsignable, listWarnings, redactSecrets } from './explain-signing.ts'
import { type CommandInput, prepareSigning, type SigningOptions } from './prepare-signing.ts'
import { UsageError } from './usage-error.ts'

/**
 * Runs `sign`: explains how the hash of the message on standard input is computed (specification 5.2).
 * @throws UsageError, ConfigError
 */
export async function signMessage(input: CommandInput, options: SigningOptions): Promise<string> {
  const job = await prepareSigning(input, options)
  const unsignable = findUnsignable(job)
  if (unsignable) throw new UsageError(unsignable)
  const warnings = listWarnings(job)
  const lines = [...explainSigning(job), ...(warnings.length > 0 ? ['', ...warnings] : [])]
  return redactSecrets(`${lines.join('\n')}\n`, job)
}
