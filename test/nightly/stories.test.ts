import { playFormStories } from '../console/forms/play-stories.ts'
import { playRefundFormStories } from '../console/refund-form/play-stories.ts'
import { playCallStories } from '../console/story/play-stories.ts'
import { playTaskStories } from '../console/tasks/play-stories.ts'

playCallStories(false)
playFormStories(true, 'en')
playFormStories(false, 'vi')
playRefundFormStories(false)
playTaskStories(false)
