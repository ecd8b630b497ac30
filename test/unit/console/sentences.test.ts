import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SENTENCES, sayStored } from '../../../src/console/texts/sentences.ts'

const SRC = new URL('../../../src/', import.meta.url)

/** The files that write sentences, without their comments. */
const SOURCES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('console/'))
  .map((file) => readFileSync(new URL(file, SRC), 'utf8'))
  .map((text) => text.replaceAll(/\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ''))

/** What the code puts together of words that stand apart in it. */
const TOGETHER = ['refund noted', 'refund assigned']

/** The words of a sentence between its places. */
const listWords = (english: string) =>
  english
    .split(/\{.*?\}/)
    .map((part) => part.replaceAll(/^[^a-zA-Z]+|[^a-zA-Z0]+$/g, ''))
    .filter((words) => words !== '')
    .flatMap((words) => (TOGETHER.includes(words) ? words.split(' ') : [words]))

const isIn = (source: string, words: string) =>
  new RegExp(`(?<=['"\`} (])${words.replaceAll(/[()]/g, String.raw`\$&`)}(?=['"\`$ :;,.()])`).test(
    source,
  )

describe('each stored sentence', () => {
  it.each(SENTENCES)('%j is one that the code writes', (english) => {
    const words = listWords(english)
    expect(SOURCES.some((source) => words.every((one) => isIn(source, one)))).toBe(true)
  })

  it('has the same values in Vietnamese', () => {
    const values = (text: string) => [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name).sort()
    const different = SENTENCES.filter(([en, vi]) => String(values(en)) !== String(values(vi)))
    expect(different).toEqual([])
  })
})

describe('a stored sentence', () => {
  it.each([
    ['requested by Mai: Paid twice, now', 'Mai đã yêu cầu: Paid twice, now'],
    [
      'resolved with API key shop, which also requested it: sent (against evidence: the gateway notified that it succeeded; a person decided that it failed)',
      'khóa API shop (cũng là bên đã yêu cầu) đã kết luận: sent (trái với bằng chứng: cổng thông báo lệnh thành công; một người đã kết luận: thất bại)',
    ],
    [
      'hold of the account released by Mai, who also requested refunds a, b and 2 more: checked',
      'Mai (cũng là người đã yêu cầu các lệnh hoàn tiền a, b và 2 lệnh khác) đã bỏ tạm giữ tài khoản bán hàng: checked',
    ],
    [
      'the gateway notified a failure (code 5), and no success within 9 ms; the code is not known to be final',
      'cổng thông báo thất bại (mã 5), và không có thành công nào trong 9 ms; chưa biết mã này có là kết quả cuối cùng hay không',
    ],
    [
      'check before sending: the payment is FAILED; 30 of the refunded amount 40 of payment P-1 are not explained by a known refund, and may be this refund',
      'kiểm tra trước khi gửi: khoản thanh toán ở trạng thái: thất bại; 30 trong số tiền đã hoàn 40 của khoản thanh toán P-1 không thuộc lệnh hoàn tiền nào đã biết và có thể là lệnh này',
    ],
    [
      'the gateway answered with code 33: invalid amount (published meaning of the code; the gateway sent no message)',
      'cổng trả lời: mã 33: số tiền không hợp lệ (ý nghĩa được công bố của mã; cổng không gửi nội dung)',
    ],
    ['code 33: no refund, sorry', 'mã 33: no refund, sorry'],
    ['amount 99000 is expected of order DH1002', 'đơn hàng DH1002 cần số tiền 99000'],
    [
      'SUCCESS 10, FAILED 20, OTHER 30, and 2 more',
      'thành công 10, thất bại 20, OTHER 30, và 2 khoản khác',
    ],
  ])('%j is %j', (stored, said) => {
    expect(sayStored('vi', stored)).toBe(said)
    expect(sayStored('en', stored)).toBe(stored)
  })

  it.each(['a sentence of a later release', '{"id":"P-1","amount":"ten"}', ''])(
    'that is not known stays: %j',
    (text) => expect(sayStored('vi', text)).toBe(text),
  )
})
