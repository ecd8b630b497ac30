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
} from './settings.ts'
import { decideTokenSource, type NameWord } from './token-source.ts'

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
 * Reads the accounts of a file, each with its signing secret and where its access token comes from.
 * @param isRefusedUrl whether a client's secret must not travel to this address
 * @param problems gets one line for everything that is wrong
 */
export function readMerchantsFile(
  file: string,
  isRefusedUrl: (url: URL) => boolean,
  problems: string[],
) {
  try {
    const entries = z
      .array(FILE_ACCOUNT)
      .min(1, 'holds no account')
      .parse(JSON.parse(readFileSync(file, 'utf8')))
    const codes = entries.map((entry) => entry.merchantCode)
    const twice = codes.find((one, index) => codes.indexOf(one) !== index)
    if (twice) {
      problems.push(`MERCHANTS_FILE ${file} names the account ${twice} twice; ${FILE_EXAMPLE}`)
    }
    return entries.map(({ merchantCode, secret, previousSecret, ...words }) => {
      const name: NameWord = (word) => ({ name: word, example: `"${word}":"…"` })
      const { source, problem } = decideTokenSource(words, name, isRefusedUrl)
      if (problem) problems.push(`MERCHANTS_FILE ${file} is wrong at ${merchantCode}: ${problem}`)
      return {
        merchantCode,
        secret,
        ...(previousSecret === undefined ? {} : { previousSecret }),
        ...(source ? { token: source } : {}),
      }
    })
  } catch (error) {
    problems.push(`MERCHANTS_FILE ${file} ${describe(error)}; ${FILE_EXAMPLE}`)
    return []
  }
}

/** What is wrong with the file, without any of its content: it holds secrets. */
function describe(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues
    if (issue?.code === 'unrecognized_keys') {
      const known = Object.keys(FILE_ACCOUNT.shape).join(', ')
      return `is wrong at ${issue.path.join('.')}: it has a member that is none of ${known}`
    }
    return `is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message.split('; ')[0]}`
  }
  if (error instanceof SyntaxError) return 'is not JSON'
  return 'cannot be read'
}
