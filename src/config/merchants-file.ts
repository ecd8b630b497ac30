import { readFileSync } from 'node:fs'
import { z } from 'zod'
import {
  accessToken,
  clientId,
  clientSecret,
  merchantCode,
  secret,
  tokenScope,
  webAddress,
} from './setting-types.ts'
import { type DescribeMember, resolveTokenSource } from './token-source.ts'

const FILE_EXAMPLE = `for example [{"merchantCode":"SHOP1","secret":"<the signing secret>"}]`

const FILE_ACCOUNT = z.strictObject({
  merchantCode: merchantCode(),
  secret: secret(),
  previousSecret: secret().optional(),
  accessToken: accessToken().optional(),
  tokenUrl: webAddress('https://gateway.example/v2/auth/oauth2/token'),
  clientId: clientId().optional(),
  clientSecret: clientSecret().optional(),
  tokenScope: tokenScope().optional(),
})

/**
 * Reads the accounts file: each account with its signing secret and the source of its access token.
 * @param isInsecureUrl whether a client secret must not be sent to this URL
 * @param problems receives one line per error
 */
export function readMerchantsFile(
  file: string,
  isInsecureUrl: (url: URL) => boolean,
  problems: string[],
) {
  try {
    const entries = z
      .array(FILE_ACCOUNT)
      .min(1, 'contains no accounts')
      .parse(JSON.parse(readFileSync(file, 'utf8')))
    const codes = entries.map((entry) => entry.merchantCode)
    const duplicate = codes.find((code, index) => codes.indexOf(code) !== index)
    if (duplicate) {
      problems.push(`MERCHANTS_FILE ${file} lists the account ${duplicate} twice; ${FILE_EXAMPLE}`)
    }
    return entries.map(({ merchantCode, secret, previousSecret, ...members }) => {
      const { source, problem } = resolveTokenSource(members, describeMember, isInsecureUrl)
      if (problem) problems.push(`MERCHANTS_FILE ${file} is invalid at ${merchantCode}: ${problem}`)
      return {
        merchantCode,
        secret,
        ...(previousSecret === undefined ? {} : { previousSecret }),
        ...(source ? { token: source } : {}),
      }
    })
  } catch (error) {
    problems.push(`MERCHANTS_FILE ${file} ${explain(error)}; ${FILE_EXAMPLE}`)
    return []
  }
}

const describeMember: DescribeMember = (member) => ({ name: member, example: `"${member}":"…"` })

/** Explains what is wrong with the file without quoting it: it holds secrets. */
function explain(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues
    if (issue?.code === 'unrecognized_keys') {
      const known = Object.keys(FILE_ACCOUNT.shape).join(', ')
      return `is invalid at ${issue.path.join('.')}: it has an unknown member (known are ${known})`
    }
    return `is invalid at ${issue?.path.join('.') || 'the top level'}: ${issue?.message.split('; ')[0]}`
  }
  if (error instanceof SyntaxError) return 'is not valid JSON'
  return 'cannot be read'
}
