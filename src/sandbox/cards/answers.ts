import { randomUUID } from 'node:crypto'
import { isErrorStatus } from '../faults/misbehave.ts'
import { writeJson } from '../wire.ts'

/** `code` 1 and `state` 2 are what success is known to carry; the others are the sandbox's own. */
const ANSWERS = {
  success: { status: 200, code: 1, state: 2, en: 'Successful', vi: 'Thành công' },
  unauthorised: {
    status: 401,
    code: 401,
    state: 0,
    en: 'The access token is missing, unknown or expired',
    vi: 'Mã truy cập bị thiếu, không hợp lệ hoặc đã hết hạn',
  },
  unknownCard: {
    status: 404,
    code: 404,
    state: 0,
    en: 'No such virtual card',
    vi: 'Không tìm thấy thẻ ảo',
  },
  badParameter: {
    status: 422,
    code: 422,
    state: 0,
    en: 'Invalid parameter',
    vi: 'Tham số không hợp lệ',
  },
  failed: { status: 200, code: 0, state: 0, en: 'Failed', vi: 'Thất bại' },
} satisfies Record<string, CardAnswer>

/** An envelope (specification 2.1) before it is written, and the HTTP status it goes out with. */
export type CardAnswer = {
  status: number
  code: number
  state: number
  en: string
  vi: string
  detail?: string
  data?: unknown
}

/** An answer by name. `detail` says more, and is the same in every language. */
export function answerCards(
  name: keyof typeof ANSWERS,
  more: { detail?: string; data?: unknown } = {},
): CardAnswer {
  return { ...ANSWERS[name], ...more }
}

/**
 * For faults: a code from 400 to 599 is the HTTP status, too; any other comes with HTTP 200. Code 1
 * means success here, so that a fault of code 1 says 0.
 */
export function refuseWithCode(code: number): CardAnswer {
  if (code === 401) return answerCards('unauthorised')
  return {
    ...ANSWERS.failed,
    status: isErrorStatus(code) ? code : 200,
    code: code === 1 ? 0 : code,
  }
}

/** The envelope as JSON text, `data` null when there is none, its message in that language. */
export function writeEnvelope(
  answer: CardAnswer,
  { language, prefix }: { language: string; prefix: string },
): string {
  const { code, state, data = null, detail } = answer
  const words = language === 'vi' ? answer.vi : answer.en
  const message = detail === undefined ? words : `${words}: ${detail}`
  return writeJson({ code, state, data, message, [`${prefix}ResponseId`]: randomUUID() })
}
