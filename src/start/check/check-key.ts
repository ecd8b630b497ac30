import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-error.ts'
import { checkDataKeys } from '../../data-keys/check-data-keys.ts'
import { computeKeyId } from '../../platform/crypto/encryption.ts'
import type { Sql } from '../../platform/postgres/types.ts'
import type { Finding } from './types.ts'

/** Checks that the encryption key opens what the database stores. */
export async function checkKey(sql: Sql, config: Config): Promise<Finding> {
  const name = 'key'
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  if (current === undefined) {
    const detail = `DATA_ENCRYPTION_KEY is not set: the demo keeps one in ${config.DATA_DIR}`
    return { name, status: 'skipped', detail }
  }
  const id = computeKeyId(Buffer.from(current, 'base64'))
  try {
    const stored = await checkDataKeys(sql, { current, previous })
    const what = stored === 'nothing' ? 'nothing is stored yet' : 'opens what is stored'
    return { name, status: 'ok', detail: `${id} ${what}` }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { name, status: 'failed', detail: error.lines.join('; ') }
  }
}
